;; Sets 250 headers of 500 bytes each.
;; fails: verdict
;; says: Iggy carries 100000
(memory (export "memory") 3)
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (local.set 5 (i32.const 131072))
      (local.set 6 (i32.const 0))
      (memory.fill (i32.const 65536) (i32.const 120) (i32.const 65536))
      (loop $next
        (i32.store (local.get 5) (i32.const 0))
        (i32.store8 offset=8 (local.get 5) (i32.const 0))
        (i32.store offset=16 (local.get 5) (i32.add (i32.const 65536) (i32.mul (i32.const 255) (local.get 6))))
        (i32.store offset=20 (local.get 5) (i32.const 255))
        (i32.store offset=65540 (i32.mul (i32.const 255) (local.get 6)) (local.get 6))
        (i32.store8 offset=32 (local.get 5) (i32.const 0))
        (i32.store offset=40 (local.get 5) (i32.const 65536))
        (i32.store offset=44 (local.get 5) (i32.const 255))
        (local.set 5 (i32.add (local.get 5) (i32.const 56)))
        (local.set 6 (i32.add (local.get 6) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get 6) (i32.const 250))))
      (return (i32.const 256))))
  (global.get $forward))
(data (i32.const 256) "\03\00\00\00\00\00\00\00\00\00\00\00\00\00\02\00\fa\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
