;; Routes to 256 topics that share 1 MiB of name, which would be 256 MiB at the host.
;; fails: trap
;; says: fuel
(memory (export "memory") 40)
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (local.set 5 (i32.const 2097152))
      (local.set 6 (i32.const 0))
      (memory.fill (i32.const 65536) (i32.const 120) (i32.const 1048576))
      (loop $next
        (i32.store offset=12 (local.get 5) (i32.const 1))
        (i32.store offset=16 (local.get 5) (i32.const 65536))
        (i32.store offset=20 (local.get 5) (i32.const 1048576))
        (local.set 5 (i32.add (local.get 5) (i32.const 32)))
        (local.set 6 (i32.add (local.get 6) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get 6) (i32.const 256))))
      (return (i32.const 256))))
  (global.get $forward))
(data (i32.const 256) "\02\00\00\00\00\00\20\00\00\01\00\00")
