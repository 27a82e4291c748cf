;; Gives three million choices for one message.
;; world: transform-batch
;; fails: trap
;; says: it gave 3000000 verdicts for 1 messages
(memory (export "memory") 200)
(func $handle (type $handle)
  (if (call $holds_bad (local.get 0) (local.get 1))
    (then
      (drop (call $forward_all (local.get 1)))
      (i32.store (i32.const 64) (i32.const 65536))
      (i32.store (i32.const 68) (i32.const 3000000))
      (return (i32.const 64))))
  (call $forward_all (local.get 1)))
