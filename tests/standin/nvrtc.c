/* A library that calls itself NVRTC and has too little of it. */
int nvrtcVersion(int *major, int *minor);
int nvrtcVersion(int *major, int *minor)
{
    *major = 10;
    *minor = 0;
    return 0;
}
