// %RANGE% U u 1:8:1
void one(float* y) { y[0] = U; }
void two(float* y) { y[0] = U; }
