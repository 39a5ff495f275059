// HIP's printf with -mprintf-kind=buffered.
#include "hipmini.h"
// The device library of 5.2.3 has none yet: header of two words (used, capacity), then records.
extern "C" __device__ __attribute__((used,noinline)) char*__printf_alloc(u32 n){
  typedef __attribute__((address_space(4))) const char*implicit;
  u32*b=*(u32*__attribute__((address_space(4)))const*)((implicit)__builtin_amdgcn_implicitarg_ptr()+72);
  u32 cap=b[1],o=__atomic_fetch_add(&b[0],0u,__ATOMIC_RELAXED);
  for(;;){ if(o+n>cap) return nullptr; if(__atomic_compare_exchange_n(&b[0],&o,o+n,false,__ATOMIC_RELAXED,__ATOMIC_RELAXED)) break; }
  return (char*)(b+2)+o;
}
K void hello(int n,float f){ if(TX<(u32)n) printf("hello %d of %d f=%g s=%s %ld\n",(int)TX,n,f,"lit",(long)n<<33);}
K void flood(u32 n){ for(u32 i=0;i<n;i++) printf("line %u of lane %u\n",i,(u32)TX);}
