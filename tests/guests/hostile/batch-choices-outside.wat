;; Gives choices that lie outside its memory.
;; world: transform-batch
;; fails: trap
;; says: out of bounds
(func $handle (type $handle)
  (if (call $holds_bad (local.get 0) (local.get 1))
    (then
      (drop (call $forward_all (local.get 1)))
      (i32.store (i32.const 64) (i32.const 65536))
      (return (i32.const 64))))
  (call $forward_all (local.get 1)))
