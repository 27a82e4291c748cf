;; Refuses, with a reason of 8 MiB.
;; fails: start
;; says: refused to start: xxx
(memory (export "memory") 200)
(func $start (type $start)
  (memory.fill (i32.const 65536) (i32.const 120) (i32.const 8388608))
  (i32.const 256))
(data (i32.const 256) "\01\00\00\00\00\00\01\00\00\00\80\00")
