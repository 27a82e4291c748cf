;; Rejects with a reason of 8 MiB.
;; fails: reject
;; says: xxxx
(memory (export "memory") 200)
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (memory.fill (i32.const 65536) (i32.const 120) (i32.const 8388608))
      (return (i32.const 256))))
  (global.get $forward))
(data (i32.const 256) "\04\00\00\00\00\00\01\00\00\00\80\00")
