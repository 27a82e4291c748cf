;; Routes to 100,000 destinations.
;; fails: verdict
;; says: 100000 destinations for a message; the limit is 64
(memory (export "memory") 60)
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (return (i32.const 256))))
  (global.get $forward))
(data (i32.const 256) "\02\00\00\00\00\00\01\00\a0\86\01\00")
