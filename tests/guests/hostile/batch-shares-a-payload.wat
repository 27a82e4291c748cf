;; Gives 200 verdicts that share a payload of 1 MiB, which would be 200 MiB at the host.
;; world: transform-batch
;; fails: trap
;; says: fuel
(memory (export "memory") 40)
(func $handle (type $handle)
  (if (call $holds_bad (local.get 0) (local.get 1))
    (then
      (drop (call $forward_all (local.get 1)))
      (i32.store (i32.const 72) (i32.const 2097152))
      (i32.store (i32.const 76) (i32.const 200))
      (local.set 0 (i32.const 2097152))
      (local.set 1 (i32.const 200))
      (loop $next
        (i32.store8 (local.get 0) (i32.const 3))
        (i32.store offset=20 (local.get 0) (i32.const 1))
        (i32.store offset=24 (local.get 0) (i32.const 65536))
        (i32.store offset=28 (local.get 0) (i32.const 1048576))
        (local.set 0 (i32.add (local.get 0) (i32.const 32)))
        (br_if $next (local.tee 1 (i32.sub (local.get 1) (i32.const 1)))))
      (return (i32.const 64))))
  (call $forward_all (local.get 1)))
