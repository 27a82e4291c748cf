;; Counts under a name that lies outside its memory.
;; fails: trap
;; says: out of bounds
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (call $count (i32.const -4) (i32.const 8) (i64.const 1))))
  (global.get $forward))
