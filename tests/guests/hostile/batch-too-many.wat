;; Gives a verdict more than there are messages.
;; world: transform-batch
;; fails: trap
;; says: it gave 2 verdicts for 1 messages
(func $handle (type $handle)
  (if (call $holds_bad (local.get 0) (local.get 1))
    (then
      (return (call $forward_all (i32.add (local.get 1) (i32.const 1))))))
  (call $forward_all (local.get 1)))
