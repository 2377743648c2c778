// Walk passes every kill point in order and says so, for the package's test.
package main

import (
	"fmt"

	"colophon/internal/killpoint"
)

func main() {
	for _, name := range killpoint.Names() {
		killpoint.At(name)
		fmt.Println(name)
	}
}
