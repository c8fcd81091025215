// Package hcpx is the root of the module; it holds no code. The program is cmd/hcpx, the rooms are under
// internal/, one for each section of the specification: docs/layout.md follows one exec through them.
package hcpx
