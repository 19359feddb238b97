// %RANGE% A a 1:4:1

// %RANGE% B b 4:16:0
void f(float* y) { y[0] = A * B; }
