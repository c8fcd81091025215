// Command hello is the smallest useful Go program: the measure of start-up and of a bare fork and exec.
package main

import "os"

func main() { _, _ = os.Stdout.WriteString("{\"hello\":\"world\"}\n") }
