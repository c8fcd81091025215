package jq

import (
	"testing"

	"hcpx/internal/adapter/composite/machinetest"
)

func Test_3_5_InProcess(t *testing.T) { machinetest.Run(t, New()) }
