;; Logs huge lines without end.
;; fails: timeout
;; says: longer than its limit of 500ms
(memory (export "memory") 200)
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (loop $for_ever
        (call $log (i32.const 4) (i32.const 65536) (i32.const 8388608))
        (br $for_ever))))
  (global.get $forward))
