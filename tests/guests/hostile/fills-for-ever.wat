;; Fills its memory again and again.
;; fails: timeout
;; says: longer than its limit of 500ms
(memory (export "memory") 160)
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (loop $for_ever
        (memory.fill (i32.const 65536) (i32.const 1) (i32.const 10000000))
        (br $for_ever))))
  (global.get $forward))
