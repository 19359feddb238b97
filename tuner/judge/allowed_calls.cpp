#include "tuner/judge/allowed_calls.h"

#include <algorithm>

namespace tuner {

NameSet names_in(std::string_view text) {
  NameSet names;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) names.insert(text.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

namespace {

// Of <math.h> and <complex.h>; each also with an f or l behind it.
bool is_math(std::string_view name) {
  static const NameSet kNames = names_in(
      "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 "
      "exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp lgamma "
      "lgamma_r llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint "
      "nextafter pow pow10 remainder remquo rint round roundeven scalbln scalbn sin sincos sinh "
      "sqrt tan tanh tgamma trunc y0 y1 yn cabs cacos cacosh carg casin casinh catan catanh "
      "ccos ccosh cexp cimag clog conj cpow cproj creal csin csinh csqrt ctan ctanh "
      "__fpclassify __finite __isinf __isnan __signbit __issignaling");
  if (name.starts_with("_ZGV")) return true;  // vectors of libmvec
  if (name.ends_with("_finite") && name.starts_with("__")) name = name.substr(2, name.size() - 9);
  if (kNames.contains(name)) return true;
  return !name.empty() && (name.back() == 'f' || name.back() == 'l') &&
         kNames.contains(name.substr(0, name.size() - 1));
}

// Memory, strings, sorting, and what compilers call by themselves.
bool is_plain(std::string_view name) {
  static const NameSet kNames = names_in(
      "memcpy memmove memset memcmp memchr memrchr mempcpy bcmp strlen strnlen strcmp strncmp "
      "strcpy strncpy strcat strncat strchr strrchr strstr stpcpy malloc calloc realloc free "
      "cfree memalign aligned_alloc posix_memalign abs labs llabs div ldiv lldiv qsort qsort_r "
      "bsearch rand_r abort snprintf vsnprintf strtol strtod strtof strtoul strtoll strtoull "
      "__assert_fail __stack_chk_fail __chk_fail __errno_location __tls_get_addr __gmon_start__ "
      "__cxa_finalize _ITM_deregisterTMCloneTable _ITM_registerTMCloneTable "
      "__gxx_personality_v0 __gcc_personality_v0 __dynamic_cast");
  if (name.ends_with("_chk") && name.starts_with("__")) name = name.substr(2, name.size() - 6);
  return kNames.contains(name) || name.starts_with("_Unwind_");
}

// The runtime of C++, and of its library what needs no system.
bool is_cxx(std::string_view name) {
  static constexpr std::string_view kOperators[] = {"_Znw", "_Zna", "_Zdl", "_Zda"};
  for (const std::string_view op : kOperators)
    if (name.starts_with(op)) return true;
  if (name.starts_with("__cxa_")) return true;
  static constexpr std::string_view kLibrary[] = {"_ZSt",  "_ZNSt",   "_ZNKSt", "_ZTVSt", "_ZTISt",
                                                  "_ZTVN", "_ZTIN10", "_ZTSSt", "_ZNVSt"};
  const bool of_library =
      std::ranges::any_of(kLibrary, [&](std::string_view s) { return name.starts_with(s); });
  static constexpr std::string_view kSystem[] = {"thread",    "chrono",   "filesystem", "random_device",
                                                 "fstream",   "filebuf",  "future",     "condition_variable",
                                                 "ostream",   "istream",  "_ZSt4cout",  "_ZSt4cerr",
                                                 "_ZSt4clog", "_ZSt3cin", "semaphore",  "stop_",
                                                 "FILE"};
  return of_library && std::ranges::none_of(kSystem, [&](std::string_view s) {
           return name.find(s) != std::string_view::npos;
         });
}

bool is_openmp(std::string_view name) {
  static const NameSet kNames = names_in(
      "omp_get_thread_num omp_get_num_threads omp_get_max_threads omp_get_num_procs "
      "omp_set_num_threads omp_in_parallel omp_get_level omp_get_team_size omp_set_dynamic");
  return kNames.contains(name) || name.starts_with("GOMP_") || name.starts_with("__kmpc_");
}

bool is_thread(std::string_view name) {
  static constexpr std::string_view kRoots[] = {"pthread_mutex_",
                                                "pthread_cond_",
                                                "pthread_barrier_",
                                                "pthread_spin_",
                                                "pthread_rwlock_",
                                                "pthread_attr_",
                                                "mtx_",
                                                "cnd_"};
  static const NameSet kNames = names_in(
      "pthread_create pthread_join pthread_self pthread_once thrd_create thrd_join sched_yield "
      "thrd_yield call_once _ZNSt6thread4joinEv _ZNSt6thread20hardware_concurrencyEv "
      "_ZSt25__throw_bad_function_callv");
  return kNames.contains(name) || name.starts_with("_ZNSt6thread15_M_start_thread") ||
         name.starts_with("_ZNSt6thread6_State") || name.starts_with("_ZTINSt6thread6_State") ||
         std::ranges::any_of(kRoots, [&](std::string_view root) { return name.starts_with(root); });
}

}  // namespace

bool may_call(std::string_view name, int threads) {
  return is_math(name) || is_plain(name) || is_cxx(name) || is_openmp(name) ||
         (threads > 1 && is_thread(name));
}

bool is_name_of_system(std::string_view name) {
  static const NameSet kNames = names_in(
      "clock_gettime clock_getres clock gettimeofday time times getrusage nanosleep usleep "
      "sleep clock_nanosleep adjtime malloc free calloc realloc memcmp bcmp mmap munmap "
      "mprotect mremap madvise brk sbrk open openat read write pread pwrite close fopen fread "
      "fwrite fclose printf fprintf puts exit _exit _Exit abort atexit raise kill tgkill signal "
      "sigaction setitimer alarm fork vfork execve waitpid wait4 syscall dlopen dlsym dlclose "
      "pthread_create pthread_join getenv getpid gettid sched_yield prctl seccomp main _start "
      "_init _fini __libc_start_main __cxa_atexit __cxa_finalize longjmp setjmp _setjmp");
  return kNames.contains(name) || name.starts_with("__vdso_") || name.starts_with("__wrap_");
}

}  // namespace tuner
