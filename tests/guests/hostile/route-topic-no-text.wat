;; Routes to a topic whose name is no UTF-8.
;; fails: trap
;; says: utf-8
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (return (i32.const 256))))
  (global.get $forward))
(data (i32.const 256) "\02\00\00\00\00\02\00\00\01\00\00\00")
(data (i32.const 512) "\00\00\00\00\00\00\00\00\00\00\00\00\01\00\00\00\58\02\00\00\02\00\00\00\00\00\00\00\00\00\00\00")
(data (i32.const 600) "\c3\28")
