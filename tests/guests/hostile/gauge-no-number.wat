;; Sets a gauge to what is no number.
;; fails: nothing
(data (i32.const 512) "level")
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (call $gauge (i32.const 512) (i32.const 5) (f64.const nan))))
  (global.get $forward))
