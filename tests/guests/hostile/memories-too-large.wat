;; Comes with several memories that are too large together.
;; fails: start
;; says: bytes of memory and may have
(memory (export "memory") 200)
(memory 200)
