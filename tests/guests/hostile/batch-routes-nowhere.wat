;; Routes one message of a batch to no destination.
;; world: transform-batch
;; fails: verdict
;; says: no destination
(func $handle (type $handle) (local $at i32)
  (drop (call $forward_all (local.get 1)))
  (i32.store (i32.const 64) (i32.const 512))
  (i32.store (i32.const 72) (i32.const 256))
  (i32.store (i32.const 76) (i32.const 2))
  (loop $next
    (i32.store offset=512 (i32.mul (local.get $at) (i32.const 4))
      (call $is_bad (i64.load (i32.add (local.get 0) (i32.mul (local.get $at) (i32.const 8))))))
    (local.set $at (i32.add (local.get $at) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $at) (local.get 1))))
  (i32.const 64))
(data (i32.const 256) "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\02\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
