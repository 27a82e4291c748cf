;; Changes headers 100,000 times.
;; fails: verdict
;; says: 100000 changes of headers
(memory (export "memory") 120)
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (local.set 5 (i32.const 65536))
      (local.set 6 (i32.const 0))
      (loop $next
        (i32.store8 (local.get 5) (i32.const 1))
        (i32.store offset=16 (local.get 5) (i32.const 600))
        (i32.store offset=20 (local.get 5) (i32.const 1))
        (local.set 5 (i32.add (local.get 5) (i32.const 56)))
        (local.set 6 (i32.add (local.get 6) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get 6) (i32.const 100000))))
      (return (i32.const 256))))
  (global.get $forward))
(data (i32.const 256) "\03\00\00\00\00\00\00\00\00\00\00\00\00\00\01\00\a0\86\01\00\00\00\00\00\00\00\00\00\00\00\00\00")
(data (i32.const 600) "k")
