;; Traps on a batch that holds one message.
;; world: transform-batch
;; fails: trap
;; says: unreachable
(func $handle (type $handle)
  (if (call $holds_bad (local.get 0) (local.get 1))
    (then
      (unreachable)))
  (call $forward_all (local.get 1)))
