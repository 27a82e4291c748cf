;; Divides by zero.
;; fails: trap
;; says: integer divide by zero
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (drop (i32.div_s (i32.const 1) (local.get 7)))))
  (global.get $forward))
