;; Gives a verdict less than there are messages.
;; world: transform-batch
;; fails: trap
;; says: it gave 0 verdicts for 1 messages
(func $handle (type $handle)
  (if (call $holds_bad (local.get 0) (local.get 1))
    (then
      (return (call $forward_all (i32.sub (local.get 1) (i32.const 1))))))
  (call $forward_all (local.get 1)))
