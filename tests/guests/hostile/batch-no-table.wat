;; Chooses from a table without verdicts.
;; world: transform-batch
;; fails: trap
;; says: it chose verdict 0 of a table of 0
(func $handle (type $handle)
  (if (call $holds_bad (local.get 0) (local.get 1))
    (then
      (drop (call $forward_all (local.get 1)))
      (i32.store (i32.const 76) (i32.const 0))
      (return (i32.const 64))))
  (call $forward_all (local.get 1)))
