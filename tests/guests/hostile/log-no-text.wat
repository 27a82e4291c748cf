;; Logs a line that is no UTF-8.
;; fails: trap
;; says: utf-8
(data (i32.const 512) "\ff")
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (call $log (i32.const 4) (i32.const 512) (i32.const 1))))
  (global.get $forward))
