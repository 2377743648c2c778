//go:build !linux

package main

import "syscall"

// endsWithParent: a child ends when its standard input does.
func endsWithParent() *syscall.SysProcAttr { return nil }
