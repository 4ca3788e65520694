package valkey

import "strings"

// slotOf returns the cluster slot of a key: the CRC-16 (XMODEM) of its hash tag, which is the text
// between the first { and the next } if it is not empty, else of the whole key (Valkey cluster
// specification, "Key distribution model").
func slotOf(key string) uint16 {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for i := range len(key) {
		x := uint16(byte(crc>>8) ^ key[i])
		x ^= x >> 4
		crc = crc<<8 ^ x<<12 ^ x<<5 ^ x
	}
	return crc % clusterSlots
}
