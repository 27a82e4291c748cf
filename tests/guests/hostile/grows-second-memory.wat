;; Takes memory for a second memory until there is no more.
;; fails: trap
;; says: bytes of memory and may have
(memory (export "memory") 1)
(memory $second 1)
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (loop $more
        (drop (memory.grow $second (i32.const 16)))
        (br $more))))
  (global.get $forward))
