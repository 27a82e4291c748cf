;; Sets a header with a value of 256 bytes.
;; fails: verdict
;; says: 256 bytes; Iggy carries 1 to 255
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (return (i32.const 256))))
  (global.get $forward))
(data (i32.const 256) "\03\00\00\00\00\00\00\00\00\00\00\00\00\02\00\00\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
(data (i32.const 512) "\00\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00\58\02\00\00\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\04\00\00\00\01\00\00\00\00\00\00\00\00\00\00")
(data (i32.const 600) "k")
