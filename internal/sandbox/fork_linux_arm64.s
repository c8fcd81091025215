#include "textflag.h"

// func vfork(flags uintptr, pidfd *int32) (pid uintptr, no uintptr)
//
// The child goes on on this stack while the parent is held. The return address is in a register, of which each of
// the two has its own.
TEXT ·vfork(SB), NOSPLIT|NOFRAME, $0-32
	MOVD flags+0(FP), R0
	MOVD $0, R1          // the stack stays
	MOVD pidfd+8(FP), R2 // where the kernel puts a parent's handle
	MOVD $0, R3
	MOVD $0, R4
	MOVD $220, R8        // clone
	SVC
	MOVD $0, R1
	CMN  $4095, R0
	BCC  done            // below, unsigned: no error
	NEG  R0, R1
	MOVD $0, R0
done:
	MOVD R0, pid+16(FP)
	MOVD R1, no+24(FP)
	RET
