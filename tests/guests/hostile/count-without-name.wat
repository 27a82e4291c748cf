;; Counts under an empty name, and beyond what a counter holds.
;; fails: nothing
(data (i32.const 512) "ok")
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (call $count (i32.const 512) (i32.const 0) (i64.const 1))
      (call $count (i32.const 512) (i32.const 2) (i64.const -1))
      (call $count (i32.const 512) (i32.const 2) (i64.const -1))))
  (global.get $forward))
