;; Writes a payload that is larger than Iggy carries.
;; memory: 80 MiB
;; fails: verdict
;; says: payload of 64000001 bytes
(memory (export "memory") 977)
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (return (i32.const 256))))
  (global.get $forward))
(data (i32.const 256) "\03\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00\01\90\d0\03")
