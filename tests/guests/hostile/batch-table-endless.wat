;; Gives a table whose size overflows.
;; world: transform-batch
;; fails: trap
;; says: list
(func $handle (type $handle)
  (if (call $holds_bad (local.get 0) (local.get 1))
    (then
      (drop (call $forward_all (local.get 1)))
      (i32.store (i32.const 76) (i32.const -1))
      (return (i32.const 64))))
  (call $forward_all (local.get 1)))
