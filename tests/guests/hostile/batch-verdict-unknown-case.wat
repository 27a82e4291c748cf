;; Gives a table with a case that no verdict has.
;; world: transform-batch
;; fails: trap
;; says: discriminant
(func $handle (type $handle)
  (if (call $holds_bad (local.get 0) (local.get 1))
    (then
      (drop (call $forward_all (local.get 1)))
      (i32.store (i32.const 72) (i32.const 256))
      (return (i32.const 64))))
  (call $forward_all (local.get 1)))
(data (i32.const 256) "\63")
