;; Chooses a verdict that is not in its table.
;; world: transform-batch
;; fails: trap
;; says: it chose verdict 4294967295 of a table of 1
(func $handle (type $handle)
  (if (call $holds_bad (local.get 0) (local.get 1))
    (then
      (drop (call $forward_all (local.get 1)))
      (i32.store (i32.const 64) (i32.const 512))
      (i32.store (i32.const 512) (i32.const -1))
      (return (i32.const 64))))
  (call $forward_all (local.get 1)))
