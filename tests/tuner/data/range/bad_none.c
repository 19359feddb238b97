#define A 4
void f(float* y) { y[0] = A; }
