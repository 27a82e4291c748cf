;; Routes to a topic with a name of 8 MiB.
;; fails: verdict
;; says: topic name of 8388608 bytes
(memory (export "memory") 200)
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (memory.fill (i32.const 65536) (i32.const 120) (i32.const 8388608))
      (return (i32.const 256))))
  (global.get $forward))
(data (i32.const 256) "\02\00\00\00\00\02\00\00\01\00\00\00")
(data (i32.const 512) "\00\00\00\00\00\00\00\00\00\00\00\00\01\00\00\00\00\00\01\00\00\00\80\00\00\00\00\00\00\00\00\00")
