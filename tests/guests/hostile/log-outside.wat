;; Logs a line that lies outside its memory.
;; fails: trap
;; says: out of bounds
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (call $log (i32.const 4) (i32.const -4) (i32.const 100))))
  (global.get $forward))
