;; Never comes back from a batch that holds one message.
;; world: transform-batch
;; fails: timeout
;; says: longer than its limit of 500ms
(func $handle (type $handle)
  (if (call $holds_bad (local.get 0) (local.get 1))
    (then
      (loop $for_ever (br $for_ever))))
  (call $forward_all (local.get 1)))
