package lease

// fewKeys is the number of keys that a smallMap compares one by one.
const fewKeys = 8

// smallMap is a map that needs no memory while it has few keys. The zero value is empty. A value
// must not be the zero value.
type smallMap[K, V comparable] struct {
	keys   [fewKeys]K
	values [fewKeys]V
	size   int
	many   map[K]V // nil while there are few keys
}

func (m *smallMap[K, V]) isEmpty() bool { return m.size == 0 }

// get returns the value of a key, or the zero value.
func (m *smallMap[K, V]) get(key K) (value V) {
	if m.many != nil {
		return m.many[key]
	}
	for i := range m.size {
		if m.keys[i] == key {
			return m.values[i]
		}
	}
	return value
}

// put sets the value of a new key.
func (m *smallMap[K, V]) put(key K, value V) {
	m.size++
	switch {
	case m.many != nil:
		m.many[key] = value
	case m.size <= fewKeys:
		m.keys[m.size-1], m.values[m.size-1] = key, value
	default:
		m.many = map[K]V{key: value}
		for i := range m.keys {
			m.many[m.keys[i]] = m.values[i]
		}
	}
}
