// OpenCL's printf: records in a buffer, formats in the metadata.
// The device library of 5.2.3 has a body of printf, so this has the allocation: a header of two words (used, capacity).
__attribute__((used,noinline)) global char*__printf_alloc(uint n){
#if COV >= 5
 global uint*b=*(global uint*constant*)((constant char*)__builtin_amdgcn_implicitarg_ptr()+72);
#else
 global uint*b=*(global uint*constant*)((constant char*)__builtin_amdgcn_implicitarg_ptr()+24);
#endif
 uint cap=b[1],o=b[0]; for(;;){ if(o+n>cap)return 0; uint s=atomic_cmpxchg((volatile global uint*)b,o,o+n); if(s==o)break; o=s; } return (global char*)(b+2)+o; }
kernel void p(int n,float f){printf("ocl %d %f %s %v4d\n",n,f,"str",(int4)(1,2,3,4)); if(get_global_id(0)==1)printf("plain\n");}
kernel void kinds(char c,short s,long l,float2 v,uint u){ if(get_global_id(0)==0) printf("%c|%5hd|%-8ld|%.2v2hlf|%#x|%e|50%%: done\n",c,s,l,v,u,v.x);}
kernel void flood(uint n){ for(uint i=0;i<n;i++) printf("line %u of %u\n",i,(uint)get_global_id(0)); }
kernel void quiet(global int*p){ p[get_global_id(0)]=7; }
