;; Gives a table of 400,000 verdicts for one message.
;; world: transform-batch
;; fails: nothing
(memory (export "memory") 200)
(func $handle (type $handle)
  (if (call $holds_bad (local.get 0) (local.get 1))
    (then
      (drop (call $forward_all (local.get 1)))
      (i32.store (i32.const 72) (i32.const 65536))
      (i32.store (i32.const 76) (i32.const 400000))
      (return (i32.const 64))))
  (call $forward_all (local.get 1)))
