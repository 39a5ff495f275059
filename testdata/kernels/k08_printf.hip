// HIP's printf through hostcall: each call is a message of several packets.
#include "hipmini.h"
extern "C" __device__ u64 __ockl_fprintf_stderr_begin();
extern "C" __device__ u64 __ockl_fprintf_append_string_n(u64, const char *, u64, u32);

K void hello(int n,float f,const char*s){ if(TX<(u32)n) printf("hello %d of %d f=%f s=%s ptr=%p %ld\n",(int)TX,n,f,"lit",(void*)s,(long)n<<33);}
K void noprint(int*p){*p=1;}
// One line a workgroup, with the string long enough for several packets.
K void groups(){ if(TX==0) printf("group %u: %s\n",BX,"a string that is longer than the fifty-six bytes of one packet, by far");}
// As an assertion ends a kernel: a message for standard error, then a trap.
K void check(int*p,int limit){
  if(p[gid()]>=limit){
    const char text[]="check.hip:12: Device-side assertion `p[i] < limit' failed.\n";
    u64 m=__ockl_fprintf_stderr_begin();
    __ockl_fprintf_append_string_n(m,text,sizeof text,1);
    __builtin_trap();
  }
}
// Prints, then reads from an address that is nobody's.
K void print_then_fault(int*p){ if(TX==0) printf("before the fault\n"); sync(); p[TX]=*(volatile int*)(0xdead0000ul+4*TX); }
// Takes blocks from the device heap, uses them and gives them back.
extern "C" __device__ void*__ockl_dm_alloc(u64);
extern "C" __device__ void __ockl_dm_dealloc(u64);
K void heap(u64*p,u32 bytes){
  u64*b=(u64*)__ockl_dm_alloc(bytes);
  p[gid()]=0;
  if(b){
    for(u32 i=0;i<bytes/8;i++) b[i]=gid()*1000+i;
    sync();
    u64 sum=0; for(u32 i=0;i<bytes/8;i++) sum+=b[i];
    p[gid()]=sum;
    __ockl_dm_dealloc((u64)b);
  }
}
