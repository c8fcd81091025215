#include "textflag.h"

// func vfork(flags uintptr, pidfd *int32) (pid uintptr, no uintptr)
//
// The child goes on on this stack while the parent is held, and overwrites the return address; so that waits in a
// register, of which each of the two has its own.
TEXT ·vfork(SB), NOSPLIT|NOFRAME, $0-32
	MOVQ flags+0(FP), DI
	MOVQ pidfd+8(FP), DX // where the kernel puts a parent's handle
	XORL SI, SI          // the stack stays
	XORL R10, R10
	XORL R8, R8
	XORL R9, R9
	POPQ R12
	MOVL $56, AX         // clone
	SYSCALL
	PUSHQ R12
	XORL CX, CX
	CMPQ AX, $-4095
	JCS  done            // below, unsigned: no error
	MOVQ AX, CX
	NEGQ CX
	XORL AX, AX
done:
	MOVQ AX, pid+16(FP)
	MOVQ CX, no+24(FP)
	RET
