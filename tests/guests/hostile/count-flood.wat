;; Counts under 10,000 names.
;; fails: nothing
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (local.set 5 (i32.const 10000))
      (loop $next
        (i32.store (i32.const 512) (i32.or (local.get 5) (i32.const 0x01010101)))
        (i32.store (i32.const 512) (i32.and (i32.load (i32.const 512)) (i32.const 0x7f7f7f7f)))
        (call $count (i32.const 512) (i32.const 4) (i64.const -1))
        (br_if $next (local.tee 5 (i32.sub (local.get 5) (i32.const 1)))))))
  (global.get $forward))
