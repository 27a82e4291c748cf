;; Routes to a topic whose name lies outside its memory.
;; fails: trap
;; says: out of bounds
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (return (i32.const 256))))
  (global.get $forward))
(data (i32.const 256) "\02\00\00\00\00\02\00\00\01\00\00\00")
(data (i32.const 512) "\00\00\00\00\00\00\00\00\00\00\00\00\01\00\00\00\f0\ff\ff\ff\64\00\00\00\00\00\00\00\00\00\00\00")
