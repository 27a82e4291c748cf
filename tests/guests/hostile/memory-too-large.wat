;; Comes with more memory than it may have.
;; fails: start
;; says: bytes of memory and may have
(memory (export "memory") 1024)
