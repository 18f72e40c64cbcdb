/* Kernels that somebody wrote to get by the proofs that the backend has from kernels' texts: none
 * of them stores into what it updates, `u`, at points of its tile alone, or none that can be told
 * to. */
#ifndef PEAL_TESTS_KERNEL_TRIES_H
#define PEAL_TESTS_KERNEL_TRIES_H

#define HEAD "PEAL_KERNEL(k)(peal_tile t, PEAL_READ(float, a), PEAL_UPDATE(float, u), long s) {\n"

static const char *const kernel_tries[] = {
    "PEAL_KERNEL(k)(peal_tile t, PEAL_READ_C(float, f), PEAL_UPDATE(float, u), "
    "PEAL_UPDATE(float, v)) { PEAL_FOR_3D(t, x, y, z) { PEAL_AT(v, x, y, z) = 0; PEAL_AT(u, x "
    "- 1, y, z) = 0; } }",
    "#define IN PEAL_READ(float, a), PEAL_READ(float, b)\nPEAL_KERNEL(k)(peal_tile t, IN, "
    "PEAL_UPDATE(float, u), PEAL_UPDATE(float, v), PEAL_UPDATE(float, w)) { PEAL_FOR_3D(t, x, "
    "y, z) { PEAL_AT(w, x, y, z) = 0; PEAL_AT(u, x - 1, y, z) = 0; } }",
    "PEAL_KERNEL(k)(peal_tile t,\n#if 0\nPEAL_UPDATE(float, v),\n#endif\nPEAL_UPDATE(float, "
    "u)) { PEAL_FOR_3D(t, x, y, z) PEAL_AT(u, x - 1, y, z) = 0; }",
    HEAD "peal_tile w = {{0}, {9, 9, 9, 1}}; PEAL_FOR_3D(w, x, y, z) PEAL_AT(u, x, y, z) = 0;}",
    HEAD "peal_tile w = {{0}, {9, 9, 9, 1}}; PEAL_FOR_3D(t = w, x, y, z) PEAL_AT(u, x, y, z) = 0;}",
    "#define T t\n" HEAD "T.hi[0] += 1; PEAL_FOR_3D(t, x, y, z) PEAL_AT(u, x, y, z) = 0;}",
    "PEAL_KERNEL(k)(peal_tile t __attribute__((unused)), PEAL_UPDATE(float, u)) { t.hi[0]++; "
    "PEAL_FOR_3D(t, x, y, z) PEAL_AT(u, x, y, z) = 0;}",
    HEAD "PEAL_FOR_3D(t, x, y, z) { if (s) s = 2; else (PEAL_AT(u, x - 1, y, z)) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { do (PEAL_AT(u, x - 1, y, z)) = 0; while (0); } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { if (s) s = 2; else (x)++; PEAL_AT(u, x, y, z) = 0;} }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { ++__extension__ PEAL_AT(u, x - 1, y, z); } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { __extension__ (PEAL_AT(u, x - 1, y, z)) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { float *p = & __extension__ PEAL_AT(u, x - 1, y, z); p[0] = "
         "0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { enum { x, y = 3 }; PEAL_AT(u, x, y, z) = 0;} }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { enum { x }; PEAL_AT(u, x, y, z) = 0;} }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { int k = 0, x __attribute__((unused)) = 5; PEAL_AT(u, x, y, "
         "z) = 0;} }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { PEAL_FOR_2D(t, z, q) if (q == 3) PEAL_AT(u, x, y, z) = 0;} }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { peal_tile w = {{0}, {9, 9, 9, 1}}; PEAL_FOR_1D(w, z) "
         "PEAL_AT(u, x, y, z) = 0;} }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { peal_tile w = {{0}, {9, 9, 9, 1}}; PEAL_FOR(w, z, 7) { "
         "PEAL_AT(u, x, y, z) = 0;} } }",
    HEAD "PEAL_FOR_3D_INSIDE(t, x, y, z, z, 0, 9, 0, 9, 0, 9) PEAL_AT(u, x, y, z) = 0;}",
    HEAD "PEAL_FOR_2D(t, x, x) PEAL_AT(u, x, x) = 0; }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { z_end_ = 99; PEAL_AT(u, x, y, z) = 0;} }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { peal_strides_ u_strides_ = {0}; PEAL_AT(u, x, y, z) = 0;} }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { PEAL_AT(u, x - 1, y, z) \\\n = 1; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { x \\\n++; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { +\\\n+x; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { PEAL_AT(u, x, y, z) = 0; // \\\n } }\n } u[0] = 0; }",
    "#\\\ndefine M x++\n" HEAD "PEAL_FOR_3D(t, x, y, z) { M; PEAL_AT(u, x, y, z) = 0; } }",
    "#define M\\\nY x++\n" HEAD "PEAL_FOR_3D(t, x, y, z) { MY; PEAL_AT(u, x, y, z) = 0; } }",
    "%:define M x++\n" HEAD "PEAL_FOR_3D(t, x, y, z) { M; PEAL_AT(u, x, y, z) = 0; } }",
    "PEAL_KERNEL(k)(peal_tile t, PEAL_READ(float, a), PEAL_UPDATE(float, u), long x, long y, "
    "long z) {\nPEAL_FOR_3D(t, x, y, z) { y++ %> PEAL_AT(u, x, y, z) = 0; <% } }",
    "PEAL_KERNEL(k)(peal_tile t, PEAL_READ(float, a), PEAL_UPDATE(float, u), long x, long y, "
    "long z) {\nPEAL_FOR_3D(t, x, y, z) { ; %> PEAL_AT(u, x, y, z) = 0; <% } }",
    "#if 0\ndon't\n#endif\n#define M x++\n#if 0\ndon't\n#endif\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { M; PEAL_AT(u, x, y, z) = 0; } }",
    "#define BEGIN {\n#define END }\nPEAL_KERNEL(k)(peal_tile t, PEAL_READ(float, a), "
    "PEAL_UPDATE(float, u), long x, long y, long z) {\nPEAL_FOR_3D(t, x, y, z) { END "
    "PEAL_AT(u, x, y, z) = 0; BEGIN } }",
    "#define OP(a, o, b) a o b\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { OP(PEAL_AT(u, x - 1, y, z), =, 1); } }",
    "#define ID(a) a\n" HEAD "PEAL_FOR_3D(t, x, y, z) { PEAL_AT(u, x - 1, y, z) ID(= 1); } }",
    "#define ID(a) a\n" HEAD "PEAL_FOR_3D(t, x, y, z) { ID(++) PEAL_AT(u, x - 1, y, z); } }",
    "#define ID(a) a\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { float *p = ID(&) PEAL_AT(u, x - 1, y, z); *p = 0; } }",
    "#define u v\n" HEAD "PEAL_FOR_3D(t, x, y, z) { v[3] = 0; PEAL_AT(u, x, y, z) = 0; } }",
    "#define x q\n" HEAD "PEAL_FOR_3D(t, x, y, z) { q++; PEAL_AT(u, x, y, z) = 0; } }",
    "#define E(n) enum { n }\n" HEAD "PEAL_FOR_3D(t, x, y, z) { E(x); PEAL_AT(u, x, y, z) = 0; } }",
    "#define Z(n) static long n\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { Z(x); PEAL_AT(u, x, y, z) = 0; } }",
    "#define W z\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { PEAL_FOR_2D(t, W, q) if (q == 1) PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { float *p = bitand PEAL_AT(u, x - 1, y, z); *p = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { PEAL_AT(u, x - 1, y, z) or_eq 1; } }",
    "#define $ (void)0, PEAL_AT(u, x - 1, y, z) = 1\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { $; PEAL_AT(u, x, y, z) = 0; } }",
    "#define é (void)0, PEAL_AT(u, x - 1, y, z) = 1\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { é; PEAL_AT(u, x, y, z) = 0; } }",
    "#undef PEAL_FOR_3D\n#define PEAL_FOR_3D(t, x, y, z) if ((t).index < "
    "1)\nPEAL_KERNEL(k)(peal_tile t, PEAL_READ(float, a), PEAL_UPDATE(float, u), long x, long "
    "y, long z) {\nPEAL_FOR_3D(t, x, y, z) PEAL_AT(u, x, y, z) = 0;}",
    "#if 0\n" HEAD "PEAL_FOR_3D(t, x, y, z) PEAL_AT(u, x, y, z) = 0;}\n#endif\nstatic inline "
    "void peal_kernel_k(peal_tile t, PEAL_READ(float, a), PEAL_UPDATE(float, "
    "u), long s) { u[s] = 0; }",
    "#define DEF(k, more) PEAL_KERNEL(k)(peal_tile t, PEAL_READ(float, a), PEAL_UPDATE(float, "
    "u), long s) { PEAL_FOR_3D(t, x, y, z) { PEAL_AT(u, x, y, z) = 0; more } }\nDEF(k, u[0] = "
    "0;)",
    HEAD "PEAL_FOR_3D(t, x, y, z) { float &r = PEAL_AT(u, x - 1, y, z); r = 0; } }",
    "static void put(float &r) { r = 0; }\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { put(PEAL_AT(u, x - 1, y, z)); } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { (s ? PEAL_AT(u, x - 1, y, z) : PEAL_AT(u, x - 1, y, z)) = "
         "1; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { (s, PEAL_AT(u, x - 1, y, z)) = 1; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { int k, x{5}; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { decltype(s) x(5); PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { for (auto &r : {1}) ; int & r = x; r++; PEAL_AT(u, x, y, "
         "z) = 0; } }",
    "static void inc(int &r) { r++; }\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { inc(x); PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { auto f = [&](auto q, decltype(s) x) { PEAL_AT(u, x, y, z) "
         "= 0; }; f(1, 5); } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { PEAL_AT_3_(u, x - 1, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(((peal_tile){{0}, {9, 9, 9, 1}}), x, y, z) PEAL_AT(u, x, y, z) = 0;}",
    HEAD "PEAL_FOR_3D(t, x, y, z) { PEAL_WITH_(x, 5) { PEAL_AT(u, x, y, z) = 0; } } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { s = 1 &&&PEAL_AT(u, x - 1, y, z); } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { for (int k = 0, z __attribute__((unused)) = 3; k < 1; k++) "
         "PEAL_AT(u, x, y, z) = 0; } }",
    "#define END }\n#define BEGIN {\nPEAL_KERNEL(k)(peal_tile t, PEAL_READ(float, a), "
    "PEAL_UPDATE(float, u), long s, long x, long y, long z) {\nPEAL_FOR_3D(t, x, y, z) { { ; } "
    "END { PEAL_AT(u, x, y, z) = 0; } BEGIN } }",
    "#define E(n) enum { n }\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { { E(x); PEAL_AT(u, x, y, z) = 0; } } }",
    "#define u v\nPEAL_KERNEL(k)(peal_tile t, PEAL_UPDATE(float, u)) { PEAL_FOR_3D(t, x, y, z) "
    "v[3] = 0; }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { { int k = 0, x __attribute__((unused)) = 5; PEAL_AT(u, x, "
         "y, z) = 0; } } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { if (s) s = 2; else (z) = 3; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { { enum { x }; PEAL_AT(u, x, y, z) = 0; } } }",
    HEAD "PEAL_FOR_2D_INSIDE(t, x, y, in, 0, 9, 0, 9) { PEAL_FOR_2D_INSIDE(t, i, j, y, 0, 9, "
         "0, 9) if (i) PEAL_AT(u, x, y) = in; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { if (s) s = 2; else ++x; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { if (s) s = 2; else --PEAL_AT(u, x - 1, y, z); PEAL_AT(u, x, y, "
         "z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { s = s and ++x; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { s = compl ++x; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { s = not ++x; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { float &&r = static_cast<float &&>(PEAL_AT(u, x - 1, y, z)); r "
         "= 1; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { float &&r = std::move(PEAL_AT(u, x - 1, y, z)); r = 1; "
         "PEAL_AT(u, x, y, z) = 0; } }",
    "static __device__ void put(float &&r) { r = 0; }\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { put((float &&)PEAL_AT(u, x - 1, y, z)); PEAL_AT(u, x, y, z) = 0; } "
    "}",
    HEAD "PEAL_FOR_3D(t, x, y, z) { int &&r = static_cast<int &&>(x); r = 3; PEAL_AT(u, x, y, z) = "
         "0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { float and r = (float and)PEAL_AT(u, x - 1, y, z); r = 1; "
         "PEAL_AT(u, x, y, z) = 0; } }",
    "typedef float &&R;\n" HEAD "PEAL_FOR_3D(t, x, y, z) { R r = R(PEAL_AT(u, x - 1, y, z)); r = "
    "1; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { long list[2] = {0, 1}; for (long (x) : list) PEAL_AT(u, x, y, "
         "z) = 0; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { long (x){5}; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { long (x)(5); PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { long q = 3, (x){q}; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { if (long (x){s}) PEAL_AT(u, x, y, z) = 1; PEAL_AT(u, x, y, z) "
         "= 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { char *list[1] = {(char *)5}; for (char *x : list) PEAL_AT(u, "
         "x, y, z) = 0; PEAL_AT(u, x, y, z) = 0; } }",
    "static __device__ float put(float *p, int a, int, int, int, bool) { p[a] = 1; return 0; "
    "}\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { PEAL_AT(u, 1, 2, 3, 4, put); PEAL_AT(u, x, y, z) = 0; } }",
    "static __device__ float put(float *p, int a, int, int, int, bool) { p[a] = 1; return 0; "
    "}\n#define C 3, 4, put\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { PEAL_AT(u, x, y, C); PEAL_AT(u, x, y, z) = 0; } }",
    "static __device__ void put(float *p, int a, int, int) { p[a] = 1; }\n#define M(PEAL_AT, v) "
    "PEAL_AT(v, 1, 0, 0)\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { M(put, u); PEAL_AT(u, x, y, z) = 0; } }",
    "static __device__ void put(float *p) { p[1] = 1; }\n#define LEFT(v) PEAL_AT(v, 1, 0, "
    "0)\n#define M(LEFT, v) LEFT(v)\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { M(put, u); PEAL_AT(u, x, y, z) = 0; } }",
    "static __device__ void M(float *p) { p[1] = 1; }\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { M(u); PEAL_AT(u, x, y, z) = 0; } }\n#define M(v) PEAL_AT(v, 1, 0, "
    "0)",
    HEAD "PEAL_FOR_3D(t, x, y, z) { long q = 1'000; PEAL_AT(u, x - 1, y, z) = q; q = 1'000; "
         "PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { const char *q = R\"d( \" ( )d\"; PEAL_AT(u, x - 1, y, z) = 1; "
         "char c = '\"'; // '\n; PEAL_AT(u, x, y, z) = 0; } }",
    "#define A 0 /*\n*/ , PEAL_AT(u, x - 1, y, z) = 1\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { s = A; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { // note \\ \nPEAL_AT(u, x - 1, y, z) = 1;\n PEAL_AT(u, x, y, "
         "z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { // note \\\t\nPEAL_AT(u, x - 1, y, z) = 1;\n PEAL_AT(u, x, y, "
         "z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { // note \\ \r\nPEAL_AT(u, x - 1, y, z) = 1;\n PEAL_AT(u, x, y, "
         "z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { // note \r PEAL_AT(u, x - 1, y, z) = 1;\n PEAL_AT(u, x, y, z) "
         "= 0; } }",
    "PEAL_KERNEL(k)(peal_tile t, PEAL_READ(float, a), PEAL_UPDATE(float, u), long x, long y, long "
    "z) {\n// ?\?/\nPEAL_FOR_3D(t, x, y, z)\nPEAL_AT(u, x, y, z) = 0; }",
    "#define int64_t signed char\n" HEAD "PEAL_FOR_3D(t, x, y, z) {  PEAL_AT(u, x, y, z) = 0; } }",
    "#define int signed char\n" HEAD "PEAL_FOR_3D(t, x, y, z) {  PEAL_AT(u, x, y, z) = 0; } }",
    "#define false true\n" HEAD "PEAL_FOR_3D(t, x, y, z) {  PEAL_AT(u, x, y, z) = 0; } }",
    "#define hi peal_hi_\n" HEAD "PEAL_FOR_3D(t, x, y, z) {  PEAL_AT(u, x, y, z) = 0; } }",
    "#define CAT(a, b) a##b\nnamespace n {\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) {  PEAL_AT(u, x, y, z) = 0; } }\n}\nstatic __device__ __forceinline__ "
    "void CAT(peal_, kernel_k)(peal_tile t, PEAL_READ(float, a), PEAL_UPDATE(float, u), long s) { "
    "u[s] = 0; }",
    "#define DROP(...)\n#define P(f, n) f(n)\nDROP(" HEAD
    "PEAL_FOR_3D(t, x, y, z) {  PEAL_AT(u, x, y, z) = 0; } }\n)\nP(PEAL_KERNEL, k)(peal_tile t, "
    "PEAL_READ(float, a), PEAL_UPDATE(float, u), long s) { u[s] = 0; }",
    "namespace n {\nstruct peal_tile {\nint lo[4], hi[4]; __device__ peal_tile(::peal_tile t) { "
    "for (int i = 0; i < 4; i++) { lo[i] = t.lo[i] - 1; hi[i] = t.hi[i]; } }\nint64_t index, "
    "count; int peal_whole_ = 0, peal_odd_, peal_at_[3], peal_lo_[3], peal_hi_[3]; };\nstatic "
    "__device__ int peal_runs_whole_(peal_tile t, int) { return 0; }\nstatic __device__ int "
    "peal_across_3_(peal_tile t) { return 6; }\nstatic __device__ int peal_down_3_(peal_tile t, "
    "int) { return 2; }\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) {  PEAL_AT(u, x, y, z) = 0; } }\n}\nusing namespace n;",
    "namespace n { typedef signed char int64_t;\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) {  PEAL_AT(u, x, y, z) = 0; } }\n}\nusing namespace n;",
    "inline namespace n { static __device__ int peal_whole_rows_(int) { return 99; }\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) {  PEAL_AT(u, x, y, z) = 0; } }\n}",
    "static __device__ float *g;\nPEAL_KERNEL(o)(peal_tile t, PEAL_UPDATE(float, u)) { g = u; "
    "}\n" HEAD "PEAL_FOR_3D(t, x, y, z) { g[3] = 1; PEAL_AT(u, x, y, z) = 0; } }",
    "#include <cuda/std/utility>\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { cuda::std::swap(PEAL_AT(u, x - 1, y, z), PEAL_AT(u, x, y, z)); "
    "PEAL_AT(u, x, y, z) = 0; } }",
    "#include <type_traits>\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { std::integral_constant<int, 3> x; PEAL_AT(u, x, y, z) = 0; } }",
    "#include <type_traits>\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { std::add_lvalue_reference<float>::type r = PEAL_AT(u, x - 1, y, z); "
    "r = 1; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD
    "PEAL_FOR_3D(t, x, y, z) { if (s) s = 2; else [[likely]] ++x; PEAL_AT(u, x, y, z) = 0; } }",
    "#include <../k.h>\n" HEAD "PEAL_FOR_3D(t, x, y, z) {  PEAL_AT(u, x, y, z) = 0; } }",
    "#include <utility>\n" HEAD "PEAL_FOR_3D(t, x, y, z) { swap(PEAL_AT(u, x - 1, y, z), "
    "PEAL_AT(u, x, y, z)); PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { char (*x){(char *)5}; PEAL_AT(u, x, y, z) = 0; } }",
    "PEAL_KERNEL(k)(peal_tile t, PEAL_READ(float, a), PEAL_UPDATE(float, u), long x, long y, long "
    "z) {\n#pragma unroll /*\n*/ PEAL_FOR_3D(t, x, y, z)\nPEAL_AT(u, x, y, z) = 0; }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { { long (x){5}; PEAL_AT(u, x, y, z) = 1; } PEAL_AT(u, x, y, z) "
         "= 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { { long (x)(5); PEAL_AT(u, x, y, z) = 1; } PEAL_AT(u, x, y, z) "
         "= 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { { long q = 3, (x){q}; PEAL_AT(u, x, y, z) = 1; } PEAL_AT(u, x, "
         "y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { for (long (x){5}; s < 3; s++) PEAL_AT(u, x, y, z) = 1; "
         "PEAL_AT(u, x, y, z) = 0; } }",
    "#include <mine.h>\n" HEAD "PEAL_FOR_3D(t, x, y, z) { M; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { { int (*x)(int){}; PEAL_AT(u, x, y, z) = 1; } PEAL_AT(u, x, y, "
         "z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { { long q, *x{}; PEAL_AT(u, x, y, z) = 1; } PEAL_AT(u, x, y, z) "
         "= 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { { long q = 0, *(x)(0); PEAL_AT(u, x, y, z) = 1; } PEAL_AT(u, "
         "x, y, z) = 0; } }",
    "static __device__ float put(float *p, int a, int, int, int, bool) { p[a] = 1; return 0; "
    "}\n#define M(v) PEAL_AT(u, 1, 2, 3, 4, put) + PEAL_AT(v, 0, 0, 0)\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { s = M(a); PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { else_ = 1; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { throw ++x; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { if (s) { s = 1; } else ++ x; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { s = s xor --x; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD
    "PEAL_FOR_3D(t, x, y, z) { s = s bitor --PEAL_AT(u, x + 1, y, z); PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { delete ++x; PEAL_AT(u, x, y, z) = 0; } }",
    "#define int64_t signed char\n" HEAD "PEAL_FOR_3D(t, x, y, z) {  PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { s = s <= 1 ? 2 : 3; [[maybe_unused]] long q = 1, (x){2}; "
         "PEAL_AT(u, x, y, z) = 0; } }",
    "#define CAT(a, b) a##b\nstruct S {\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) {  PEAL_AT(u, x, y, z) = 0; } }\n};\nstatic void CAT(peal_, "
    "kernel_k)(peal_tile t, PEAL_READ(float, a), PEAL_UPDATE(float, u), long s) { u[s] = 0; }",
    "#define CAT(a, b) a##b\nCAT(PEAL_KER, NEL)(q)(long s) {}\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) {  PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { float and r = std::forward<float>(PEAL_AT(u, x - 1, y, z)); r "
         "= 1; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) {  PEAL_AT(u, x, y, z) = 0; } }\n#define int signed char",
    "#define DROP(v)\nDROP(" HEAD "PEAL_FOR_3D(t, x, y, z) {  PEAL_AT(u, x, y, z) = 0; } }\n)",
    "static __device__ void put(int &&r) { r = 3; }\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { put(std::move(x)); PEAL_AT(u, x, y, z) = 0; } }",
    "static __device__ void put(int and r) { r = 3; }\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { put(std::move(x)); PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { { long (x)[2]{1, 2}; PEAL_AT(u, x, y, z) = 1; } PEAL_AT(u, x, "
         "y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { s = 1; continue; ++x; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { s = sizeof (x) ++x; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { s = noexcept(x) ++; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { long (*(y)){(long *)5}; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { long (*(y))((long *)5); PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { long (y); PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { long q, y; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { long q = 1, *(y); PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { { long (*x){}; PEAL_AT(u, x, y, z) = 1; } PEAL_AT(u, x, y, z) "
         "= 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { for (long q = 0, y; q < 1; q++) PEAL_AT(u, x, y, z) = 1; "
         "PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { [](float *p) { p[99] = 1; return p; } PEAL_AT(u, x, y, z); "
         "PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { PEAL_AT(u[99]++ + q, x, y, z); PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { PEAL_AT(u++[0] + q, x, y, z) = 1; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { float *p = (float *)s; p[3] = 2; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { s = threadIdx.x; PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { s = clock64(); PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { atomicAdd(s, 1); PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { q[1] = { [2] = 3 }; PEAL_AT(u, x, y, z) = 0; } }",
    "static float (*raw(float *p))[9] { return (float (*)[9])p; }\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { (void)raw PEAL_AT(u, x, y, z); PEAL_AT(u, x, y, z) = 0; } }",
    "static __device__ void stop(void) { __trap(); }\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { s = 1; PEAL_AT(u, x, y, z) = 0; } }",
    "static __device__ peal_strides_ q_strides_;\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) {  PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { (void)f[0] PEAL_AT(u, x, y, z); PEAL_AT(u, x, y, z) = 0; } }",
    "#define M(v) & v\n" HEAD "PEAL_FOR_3D(t, x, y, z) { s = s M(1); PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { (x)(5); PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { if (long *(y)) PEAL_AT(u, x, y, z) = 1; PEAL_AT(u, x, y, z) = "
         "0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { real (y); PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { real *(y); PEAL_AT(u, x, y, z) = 0; } }",
    "#define E\n" HEAD "PEAL_FOR_3D(t, x, y, z) { float &&r = (float && E)PEAL_AT(u, x - 1, y, z); "
    "r = 1; PEAL_AT(u, x, y, z) = 0; } }",
    "#define E\n" HEAD "PEAL_FOR_3D(t, x, y, z) { put((float && E)PEAL_AT(u, x - 1, y, z)); "
    "PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { int w[1] = {0}; PEAL_AT(u, w[1, 2, 3, put, 0], y, z); "
         "PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { put(UINT32_C()); PEAL_AT(u, x, y, z) = 0; } }",
    HEAD "PEAL_FOR_3D(t, x, y, z) { s = f((real){1, 2}); PEAL_AT(u, x, y, z) = 0; } }",
    "static __device__ float (*g);\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { g[3] = 1; PEAL_AT(u, x, y, z) = 0; } }",
    "struct G { float *p; }; static __device__ struct G g;\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { g.p[3] = 1; PEAL_AT(u, x, y, z) = 0; } }",
    "static __device__ long g;\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { s = g; PEAL_AT(u, x, y, z) = 0; } }",
    "static __device__ float g[4096];\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { g[1] += 1; PEAL_AT(u, x, y, z) = 0; } }",
    "#define STAR *\nstatic __device__ float STAR g;\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { g[3] = 1; PEAL_AT(u, x, y, z) = 0; } }",
    "#define STAR *\nstatic __device__ const float STAR const g;\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { s = g[3]; PEAL_AT(u, x, y, z) = 0; } }",
    "typedef float *(*F)(float *);\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) { s = 1; PEAL_AT(u, x, y, z) = 0; } }",
    "static int f(int), g;\n" HEAD "PEAL_FOR_3D(t, x, y, z) { g = 1; PEAL_AT(u, x, y, z) = 0; } }",
    "static __device__ float peal_item_of_(const float *p, bool f) { return p[-1]; }\n" HEAD
    "PEAL_FOR_3D(t, x, y, z) {  PEAL_AT(u, x, y, z) = 0; } }",
    "static float v_;\n" HEAD "PEAL_FOR_3D(t, x, y, z) {  PEAL_AT(u, x, y, z) = 0; } }",
    "_Pragma(\"x\")\n" HEAD "PEAL_FOR_3D(t, x, y, z) {  PEAL_AT(u, x, y, z) = 0; } }",
};

#endif
